package dev.streamapp.examples.counter.load;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Converts an option to a number of at least 1. */
final class PositiveInteger implements ITypeConverter<Integer> {
    @Override
    public Integer convert(String text) {
        try {
            int number = Integer.parseInt(text);
            if (number >= 1) {
                return number;
            }
        } catch (NumberFormatException e) {
            // The message below says it for both cases.
        }
        throw new TypeConversionException(
                text + " is not allowed; allowed: a whole number from 1 to " + Integer.MAX_VALUE);
    }
}
