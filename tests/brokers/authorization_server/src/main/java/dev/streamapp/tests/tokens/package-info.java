/** The authorization server of the tests. */
package dev.streamapp.tests.tokens;
