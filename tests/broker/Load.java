import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Clients of all kinds that write until a line comes in, whatever happens to the brokers; then a line of JSON goes out: what they did, how
 * often. All of them keep the rules: each keeps on trying, aborts what failed, and makes a new producer where it was fenced.
 */
public final class Load {
    private static final int TIMEOUT_MS = 10_000;
    private static volatile boolean stopped = false;
    private static final Map<String, Integer> DONE = new ConcurrentHashMap<>();
    private final String bootstrap;

    private Load(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        Load load = new Load(arguments[0]);
        List<Thread> clients = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int n = i;
            clients.add(new Thread(() -> load.transactions("writer-" + n, n, n % 2 == 0)));
        }
        for (int i = 0; i < 2; i++) {
            int n = i;
            clients.add(new Thread(() -> load.transactions("twin", 10 + n, false)));
            clients.add(new Thread(() -> load.idempotent(20 + n)));
            clients.add(new Thread(() -> load.readProcessWrite("copier-" + n, 30 + n)));
        }
        clients.forEach(Thread::start);
        KafkaStreams streams = load.streams(arguments[1]);
        System.in.read();
        stopped = true;
        for (Thread client : clients) client.join(60_000);
        streams.close(Duration.ofSeconds(30));
        List<String> done = new ArrayList<>();
        new TreeMap<>(DONE).forEach((what, times) -> done.add("\"" + what + "\": " + times));
        System.out.println("{" + String.join(", ", done) + "}");
        System.exit(0);
    }

    private static void count(String what) {
        DONE.merge(what, 1, Integer::sum);
    }

    private KafkaProducer<String, String> producer(String id) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "enable.idempotence", "true", "linger.ms", "5"));
        settings.putAll(Map.of("max.block.ms", "20000", "delivery.timeout.ms", "20000", "request.timeout.ms", "5000"));
        if (id != null) settings.putAll(Map.of("transactional.id", id, "transaction.timeout.ms", TIMEOUT_MS));
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static void write(KafkaProducer<String, String> producer, Random random, Map<String, Integer> topics, int most) {
        List<String> names = new ArrayList<>(topics.keySet());
        for (int left = random.nextInt(most); left >= 0; left--) {
            String topic = names.get(random.nextInt(names.size()));
            producer.send(new ProducerRecord<>(topic, random.nextInt(topics.get(topic)), "k" + random.nextInt(20), "v" + random.nextInt(100_000)));
            if (random.nextInt(10) == 0) producer.flush();
        }
    }

    /** Transactions over several partitions; one that dies leaves an open transaction to its successor, or to the timeout. */
    private void transactions(String id, long seed, boolean dies) {
        Random random = new Random(seed);
        Map<String, Integer> topics = new TreeMap<>(Map.of("orders", 3, "payments", 2, "table", 1, "short", 1));
        KafkaProducer<String, String> producer = null;
        while (!stopped) {
            try {
                if (producer == null) {
                    producer = producer(id);
                    producer.initTransactions();
                }
                producer.beginTransaction();
                if (random.nextInt(20) != 0) write(producer, random, topics, 8);
                if (dies && random.nextInt(40) == 0) {
                    if (random.nextInt(3) == 0) nap(TIMEOUT_MS + 3_000);
                    producer = closed(producer, Duration.ZERO);
                    count("died");
                    continue;
                }
                boolean aborts = random.nextInt(7) == 0;
                if (aborts) producer.abortTransaction(); else producer.commitTransaction();
                count(aborts ? "aborted" : "committed");
                nap(random.nextInt(200));
            } catch (KafkaException thrown) {
                count(thrown.getClass().getSimpleName());
                producer = recovered(producer, thrown);
            }
        }
        closed(producer, Duration.ofSeconds(20));
    }

    private void idempotent(long seed) {
        Random random = new Random(seed);
        KafkaProducer<String, String> producer = null;
        while (!stopped) {
            try {
                if (producer == null || random.nextInt(80) == 0) {
                    closed(producer, Duration.ofSeconds(5));
                    producer = producer(null);
                }
                write(producer, random, new TreeMap<>(Map.of("plain", 1, "table", 1, "short", 1, "in", 2)), 6);
                count("wrote");
            } catch (KafkaException thrown) {
                count(thrown.getClass().getSimpleName());
                producer = closed(producer, Duration.ofSeconds(1));
            }
            nap(random.nextInt(120));
        }
        closed(producer, Duration.ofSeconds(20));
    }

    /** Consume, produce and commit the offsets in one transaction, as a member of a group that others join and leave (KIP-447). */
    private void readProcessWrite(String id, long seed) {
        Random random = new Random(seed);
        KafkaProducer<String, String> producer = null;
        KafkaConsumer<String, String> consumer = null;
        while (!stopped) {
            try {
                if (producer == null) {
                    producer = producer(id);
                    producer.initTransactions();
                }
                if (consumer == null) consumer = consumer();
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(300));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
                for (ConsumerRecord<String, String> one : records) {
                    producer.send(new ProducerRecord<>("out", Math.abs(one.key().hashCode()) % 2, one.key(), one.value()));
                    read.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
                }
                producer.sendOffsetsToTransaction(read, consumer.groupMetadata());
                if (random.nextInt(10) == 0) throw new KafkaException("the application failed");
                producer.commitTransaction();
                count("copied");
                if (random.nextInt(30) == 0) consumer = left(consumer);
            } catch (KafkaException thrown) {
                count("copier " + thrown.getClass().getSimpleName());
                producer = recovered(producer, thrown);
                consumer = left(consumer);
            }
        }
        closed(producer, Duration.ofSeconds(20));
        left(consumer);
    }

    private KafkaConsumer<String, String> consumer() {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", "copiers", "isolation.level", "read_committed"));
        settings.putAll(Map.of("enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", "20", "session.timeout.ms", "8000"));
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of("in"));
        return consumer;
    }

    /** A table of counts with its changelog and a repartition topic, in memory, exactly once. */
    private KafkaStreams streams(String folder) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("in").groupBy((key, value) -> "g" + Math.abs(value.hashCode()) % 7)
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts"))).toStream().mapValues(String::valueOf).to("counted");
        Properties settings = new Properties();
        settings.putAll(Map.of("application.id", "counter", "bootstrap.servers", bootstrap, "processing.guarantee", "exactly_once_v2"));
        settings.putAll(Map.of("num.stream.threads", "2", "state.dir", folder, "replication.factor", "3", "commit.interval.ms", "300"));
        settings.putAll(Map.of("default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class));
        settings.putAll(Map.of("auto.offset.reset", "earliest", "producer.transaction.timeout.ms", TIMEOUT_MS, "consumer.session.timeout.ms", 8_000));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(thrown -> {
            count("streams " + thrown.getClass().getSimpleName());
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        return streams;
    }

    /** The producer after an exception: it aborts and goes on, or another one takes its place. */
    private static KafkaProducer<String, String> recovered(KafkaProducer<String, String> producer, KafkaException thrown) {
        if (producer == null) return null;
        if (!(thrown instanceof ProducerFencedException || thrown instanceof InvalidProducerEpochException)) {
            try {
                producer.abortTransaction();
                return producer;
            } catch (KafkaException fatal) {
                count("abort " + fatal.getClass().getSimpleName());
            }
        }
        return closed(producer, Duration.ofSeconds(1));
    }

    private static KafkaProducer<String, String> closed(KafkaProducer<String, String> producer, Duration patience) {
        try {
            if (producer != null) producer.close(patience);
        } catch (KafkaException alreadyLost) {
            count("close " + alreadyLost.getClass().getSimpleName());
        }
        return null;
    }

    private static KafkaConsumer<String, String> left(KafkaConsumer<String, String> consumer) {
        try {
            if (consumer != null) consumer.close();
        } catch (KafkaException alreadyLost) {
            count("leave " + alreadyLost.getClass().getSimpleName());
        }
        return null;
    }

    private static void nap(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }
}
