/**
 * What agents of HTTP are made with. A connection that is idle for 15 s is closed here, before most servers
 * close theirs: a request that is sent just then has an unknown outcome. With a limit of its own, Node heeds
 * what a server says as well (`Keep-Alive: timeout=5`), and closes a second earlier.
 *
 * 16 connections are enough for the probe's two races of eight writers; a lease holder never needs more than
 * one or two.
 */
export const KEPT_CONNECTIONS = { keepAlive: true, timeout: 15_000, maxFreeSockets: 16 } as const;
