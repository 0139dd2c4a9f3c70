package dev.streamapp.agent.tls;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes values of DER (X.690), and reads as much of it as a key needs. The JDK has no public class for it. */
final class Der {

    private static final int INTEGER = 0x02;
    private static final int OCTET_STRING = 0x04;
    private static final int BIT_STRING = 0x03;
    private static final int OBJECT_IDENTIFIER = 0x06;
    private static final int UTF8_STRING = 0x0c;
    private static final int GENERALIZED_TIME = 0x18;
    private static final int SEQUENCE = 0x30;
    private static final int SET = 0x31;
    private static final int EXPLICIT_0 = 0xa0;
    private static final int SHORT_LENGTH = 0x80;
    private static final int BYTE = 0xff;

    private Der() {
    }

    static byte[] integer(byte[] twosComplement) {
        return value(INTEGER, twosComplement);
    }

    static byte[] octets(byte[] content) {
        return value(OCTET_STRING, content);
    }

    /** Returns a bit string of whole bytes. */
    static byte[] bits(byte[] content) {
        return value(BIT_STRING, concatenated(new byte[] {0}, content));
    }

    /** Takes the identifier as it is encoded. */
    static byte[] identifier(int... encoded) {
        byte[] content = new byte[encoded.length];
        for (int index = 0; index < encoded.length; index++) {
            content[index] = (byte) encoded[index];
        }
        return value(OBJECT_IDENTIFIER, content);
    }

    static byte[] text(String text) {
        return value(UTF8_STRING, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Takes the time as {@code yyyyMMddHHmmssZ}. */
    static byte[] time(String text) {
        return value(GENERALIZED_TIME, text.getBytes(StandardCharsets.US_ASCII));
    }

    static byte[] sequence(byte[]... parts) {
        return value(SEQUENCE, concatenated(parts));
    }

    static byte[] set(byte[] part) {
        return value(SET, part);
    }

    static byte[] explicit0(byte[] part) {
        return value(EXPLICIT_0, part);
    }

    /** Returns the first value within a sequence, with its header. Throws {@link IllegalArgumentException} if there is none. */
    static byte[] firstOf(byte[] sequence) {
        int begin = contentAt(sequence, 0);
        int end = contentAt(sequence, begin) + lengthAt(sequence, begin);
        if (end > sequence.length) {
            throw new IllegalArgumentException("a value is cut off");
        }
        return Arrays.copyOfRange(sequence, begin, end);
    }

    private static int contentAt(byte[] bytes, int at) {
        int first = at(bytes, at + 1);
        return at + 2 + (first < SHORT_LENGTH ? 0 : first - SHORT_LENGTH);
    }

    private static int lengthAt(byte[] bytes, int at) {
        int first = at(bytes, at + 1);
        if (first < SHORT_LENGTH) {
            return first;
        }
        int length = 0;
        for (int index = 0; index < first - SHORT_LENGTH; index++) {
            length = length << Byte.SIZE | at(bytes, at + 2 + index);
        }
        return length;
    }

    private static int at(byte[] bytes, int index) {
        if (index >= bytes.length) {
            throw new IllegalArgumentException("a value is cut off");
        }
        return bytes[index] & BYTE;
    }

    private static byte[] value(int tag, byte[] content) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        if (content.length < SHORT_LENGTH) {
            out.write(content.length);
        } else {
            int size = (Integer.SIZE - Integer.numberOfLeadingZeros(content.length) + Byte.SIZE - 1) / Byte.SIZE;
            out.write(SHORT_LENGTH + size);
            for (int shift = (size - 1) * Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
                out.write(content.length >> shift);
            }
        }
        out.writeBytes(content);
        return out.toByteArray();
    }

    private static byte[] concatenated(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }
}
