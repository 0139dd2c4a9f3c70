/** The counting application, started by Spring Boot. */
package dev.streamapp.examples.launchers.springboot;
