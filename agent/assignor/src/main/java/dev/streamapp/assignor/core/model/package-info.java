/** The input and the result of one assignment, as values. */
package dev.streamapp.assignor.core.model;
