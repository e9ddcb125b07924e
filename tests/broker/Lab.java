import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client, told what to do: a line of words comes in, a line of JSON goes out, {"error": ...} where the client threw something. */
public final class Lab {
    private final String bootstrap;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();

    private Lab(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "120000", "request.timeout.ms", "60000"));
    }

    public static void main(String[] arguments) throws Exception {
        Lab lab = new Lab(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(lab.answer(line.split(" ")));
        }
        System.exit(0); // what is open stays open: nobody closes a producer that died
    }

    private String answer(String[] words) {
        try {
            return run(words);
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            return "{\"error\": " + quoted(cause.getClass().getSimpleName()) + ", \"message\": " + quoted(String.valueOf(cause.getMessage())) + "}";
        }
    }

    private String run(String[] w) throws Exception {
        switch (w[0]) {
            case "topic": {
                Map<String, String> settings = new HashMap<>();
                for (int i = 4; i < w.length; i++) settings.put(w[i].split("=")[0], w[i].split("=")[1]);
                admin.createTopics(List.of(new NewTopic(w[1], Integer.parseInt(w[2]), Short.parseShort(w[3])).configs(settings))).all().get();
                return "{}";
            }
            case "init": // a new client with this transactional id, whoever has it now
                producers.put(w[1], producer(w[1], w[2]));
                producers.get(w[1]).initTransactions();
                return "{}";
            case "begin":
                producers.get(w[1]).beginTransaction();
                return "{}";
            case "send":
                return send(w[1], new TopicPartition(w[2], Integer.parseInt(w[3])), Integer.parseInt(w[4]), w[5]);
            case "group": // offsets that the transaction commits for a group
                producers.get(w[1]).sendOffsetsToTransaction(
                    Map.of(new TopicPartition(w[3], Integer.parseInt(w[4])), new OffsetAndMetadata(Long.parseLong(w[5]))),
                    new ConsumerGroupMetadata(w[2]));
                return "{}";
            case "commit":
                producers.get(w[1]).commitTransaction();
                return "{}";
            case "abort":
                producers.get(w[1]).abortTransaction();
                return "{}";
            case "rename": // the client that has the id lives on under another name
                producers.put(w[2], producers.remove(w[1]));
                return "{}";
            case "delete":
                admin.deleteRecords(Map.of(new TopicPartition(w[1], Integer.parseInt(w[2])), RecordsToDelete.beforeOffset(Long.parseLong(w[3])))).all().get();
                return "{}";
            case "partitions":
                return partitions();
            case "offsets":
                return offsets(new TopicPartition(w[1], Integer.parseInt(w[2])));
            case "read":
                return read(new TopicPartition(w[1], Integer.parseInt(w[2])), w[3]).toString();
            case "open":
                return open(new TopicPartition(w[1], Integer.parseInt(w[2])));
            case "transactions":
                return transactions();
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    private KafkaProducer<byte[], byte[]> producer(String id, String timeoutMs) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "enable.idempotence", "true", "linger.ms", "0"));
        settings.put("max.block.ms", "120000");
        if (!id.equals("-")) {
            settings.put("transactional.id", id);
            settings.put("transaction.timeout.ms", timeoutMs);
        }
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Keys are k0, k1, ...: the same in every call, so that a cleaner has something to do. */
    private String send(String id, TopicPartition to, int records, String value) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.computeIfAbsent(id, name -> producer("-", "0"));
        List<Future<?>> sent = new ArrayList<>();
        for (int i = 0; i < records; i++) {
            sent.add(producer.send(new ProducerRecord<>(to.topic(), to.partition(), ("k" + i).getBytes(), (value + i).getBytes())));
        }
        producer.flush();
        for (Future<?> one : sent) one.get();
        return "{}";
    }

    private String partitions() throws Exception {
        List<String> found = new ArrayList<>();
        List<String> names = new ArrayList<>(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            topic.partitions().forEach(p -> found.add("[" + quoted(topic.name()) + ", " + p.partition() + "]"));
        }
        Collections.sort(found);
        return found.toString();
    }

    /** What ListOffsets answers: the log start, and the latest offset in both isolation levels. */
    private String offsets(TopicPartition of) throws Exception {
        return "{\"log_start\": " + listed(of, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)
            + ", \"hw\": " + listed(of, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
            + ", \"lso\": " + listed(of, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) + "}";
    }

    private long listed(TopicPartition of, OffsetSpec what, IsolationLevel level) throws Exception {
        return admin.listOffsets(Map.of(of, what), new ListOffsetsOptions(level)).partitionResult(of).get().offset();
    }

    /** The offsets that a consumer gets which reads from the first to the last that its isolation level allows. */
    private List<Long> read(TopicPartition from, String level) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = consumers.computeIfAbsent(level, name -> new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "isolation.level", name, "enable.auto.commit", "false", "auto.offset.reset", "none"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        consumer.assign(List.of(from));
        consumer.seekToBeginning(List.of(from));
        long end = consumer.endOffsets(List.of(from)).get(from);
        List<Long> offsets = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(500))) offsets.add(one.offset());
        long deadline = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (consumer.position(from) < end) {
            for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) offsets.add(one.offset());
            if (System.nanoTime() > deadline) throw new IllegalStateException("stuck at " + consumer.position(from) + " of " + end);
        }
        return offsets;
    }

    /** What DescribeProducers answers: producer id -> first offset of its open transaction, and its epoch and coordinator epoch. */
    private String open(TopicPartition of) throws Exception {
        Map<Long, String> found = new TreeMap<>();
        for (ProducerState state : admin.describeProducers(List.of(of)).partitionResult(of).get().activeProducers()) {
            Optional<Long> first = state.currentTransactionStartOffset().isPresent()
                ? Optional.of(state.currentTransactionStartOffset().getAsLong()) : Optional.empty();
            first.ifPresent(offset -> found.put(state.producerId(), "[" + state.producerId() + ", " + offset + "]"));
        }
        return found.values().toString();
    }

    /** What ListTransactions and DescribeTransactions answer, for every transactional id. */
    private String transactions() throws Exception {
        List<String> ids = new ArrayList<>();
        admin.listTransactions().all().get().forEach(listing -> ids.add(listing.transactionalId()));
        Map<String, String> found = new TreeMap<>();
        for (Map.Entry<String, TransactionDescription> one : admin.describeTransactions(ids).all().get().entrySet()) {
            TransactionDescription of = one.getValue();
            List<String> places = new ArrayList<>();
            of.topicPartitions().forEach(place -> places.add(quoted(place.toString())));
            Collections.sort(places);
            found.put(one.getKey(), quoted(one.getKey()) + ": {\"state\": " + quoted(of.state().toString()) + ", \"producer_id\": " + of.producerId()
                + ", \"producer_epoch\": " + of.producerEpoch() + ", \"timeout_ms\": " + of.transactionTimeoutMs() + ", \"partitions\": " + places + "}");
        }
        return "{" + String.join(", ", found.values()) + "}";
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
