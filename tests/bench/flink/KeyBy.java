import com.sun.management.OperatingSystemMXBean;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;

/**
 * Flink itself: sequence, map, keyBy, map; tuples of three longs, objects reused, one task at each side.
 *
 * <p>The first argument is a file of records, three longs each; a job moves them over and over. Then each line of the
 * standard input is a job: {@code local 1000000} on one TaskManager, {@code remote 1000000} on two of this JVM, which
 * speak over TCP; a file name behind it gets the records that arrived. Each job answers with one line of JSON. The end
 * of the input is the end.
 *
 * <p>Timed is from the fifth part of the records to the last, in which nothing starts any more.
 */
public final class KeyBy {
    private static final TypeInformation<Tuple3<Long, Long, Long>> ROW = Types.TUPLE(Types.LONG, Types.LONG, Types.LONG);
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static long[] rows; // time, key, value; time, key, value; ...
    private static volatile long startedNanos, startedCpuNanos, endedNanos, endedCpuNanos, sum;

    private static final class Pick implements MapFunction<Long, Tuple3<Long, Long, Long>> {
        private final Tuple3<Long, Long, Long> row = new Tuple3<>(0L, 0L, 0L);
        private transient int next;

        @Override
        public Tuple3<Long, Long, Long> map(Long ignored) {
            int at = next;
            row.f0 = rows[at];
            row.f1 = rows[at + 1];
            row.f2 = rows[at + 2];
            next = at + 3 == rows.length ? 0 : at + 3;
            return row;
        }
    }

    private static final class Arrive implements MapFunction<Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
        private final long count;
        private final String file;
        private transient long seen, total;
        private transient PrintWriter out;

        private Arrive(long count, String file) {
            this.count = count;
            this.file = file;
        }

        @Override
        public Tuple3<Long, Long, Long> map(Tuple3<Long, Long, Long> row) throws Exception {
            total += row.f2;
            if (++seen == count / 5) {
                startedNanos = System.nanoTime();
                startedCpuNanos = SYSTEM.getProcessCpuTime();
            }
            if (seen == count) {
                endedNanos = System.nanoTime();
                endedCpuNanos = SYSTEM.getProcessCpuTime();
                sum = total;
            }
            if (file != null) {
                write(row);
            }
            return row;
        }

        private void write(Tuple3<Long, Long, Long> row) throws Exception {
            if (out == null) {
                out = new PrintWriter(file);
            }
            out.println(row.f0 + " " + row.f1 + " " + row.f2);
            if (seen == count) {
                out.close();
            }
        }
    }

    private static void run(boolean remote, long count, String file) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("local.number-taskmanager", remote ? "2" : "1");
        configuration.setString("taskmanager.numberOfTaskSlots", remote ? "1" : "2");
        configuration.setString("taskmanager.memory.network.min", "64m");
        configuration.setString("taskmanager.memory.network.max", "64m");
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        job.setBufferTimeout(100);
        job.getConfig().enableObjectReuse();
        job.fromSource(new NumberSequenceSource(1, count), WatermarkStrategy.noWatermarks(), "sequence", Types.LONG)
                .slotSharingGroup("producer")
                .map(new Pick()).returns(ROW)
                .slotSharingGroup("producer")
                .keyBy(row -> row.f1, Types.LONG)
                .map(new Arrive(count, file)).returns(ROW)
                .slotSharingGroup("consumer")
                .addSink(new DiscardingSink<>())
                .slotSharingGroup("consumer");
        endedNanos = 0;
        startedNanos = System.nanoTime(); // for fewer than five records
        startedCpuNanos = SYSTEM.getProcessCpuTime();
        job.execute("keyBy");
        if (endedNanos == 0) {
            throw new IllegalStateException("records were lost");
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (DataInputStream in = new DataInputStream(new FileInputStream(arguments[0]))) {
            byte[] bytes = in.readAllBytes();
            rows = new long[bytes.length / 8];
            java.nio.ByteBuffer.wrap(bytes).asLongBuffer().get(rows);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ", 3);
            long count = Long.parseLong(words[1]);
            run(words[0].equals("remote"), count, words.length > 2 ? words[2] : null);
            System.out.printf(
                    "{\"sum\": %d, \"wall_ns\": %d, \"cpu_ns\": %d, \"timed\": %d}%n",
                    sum, endedNanos - startedNanos, endedCpuNanos - startedCpuNanos, count - count / 5);
            System.out.flush();
        }
        System.exit(0);
    }
}
