/**
 * The bounds of an HTTP server. They keep one client from taking the memory or time of others; the lease is
 * renewed in another thread.
 */
export const HTTP_LIMITS = {
  /**
   * Open connections, at some 10 KB each. When they run short, an idle one is closed: a health check finds
   * room for its connection.
   */
  connections: 1_000,
  /**
   * Requests under way, from the head of the request to the last byte of its answer. More get 503, except for
   * health checks and other urgent ones.
   */
  requests: 256,
  /**
   * Requests that one connection may send ahead (pipelining), whose answers Node keeps in memory. With more
   * it is closed, health checks included.
   */
  requestsPerConnection: 16,
  /**
   * Followers of `/api/events`: half of the requests, so that the other half is left for requests that are
   * answered at once.
   */
  streams: 128,
  /** Head of a request, in bytes: Node's own default. */
  headBytes: 16_384,
  /** Time for the head of a request, and for the whole of it, in milliseconds. Slower clients get 408. */
  headTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** From one check of these times to the next, in milliseconds. */
  checkIntervalMs: 1_000,
  /**
   * Time without a byte in either direction while a request is under way, in milliseconds: a client that does
   * not read is disconnected.
   */
  silenceMs: 30_000,
  /**
   * Time after which TCP probes an idle connection, in milliseconds: a machine that has vanished does not
   * keep its connections.
   */
  probeAfterMs: 60_000,
  /** Time that requests under way have when the server is closed, in milliseconds. */
  closeMs: 1_000,
} as const;
