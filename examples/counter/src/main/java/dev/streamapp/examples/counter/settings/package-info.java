/** The application's settings, read from environment variables. */
package dev.streamapp.examples.counter.settings;
