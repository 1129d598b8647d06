/**
 * How an instance lives in the tree, in Curator's words: `DYNAMIC` goes with the session that registered it;
 * `DYNAMIC_SEQUENTIAL` too, and the servers number its znode; `STATIC` and `PERMANENT` stay until they are
 * unregistered.
 */
export type ServiceType = 'DYNAMIC' | 'STATIC' | 'PERMANENT' | 'DYNAMIC_SEQUENTIAL';

/** A piece of a {@link UriSpec}: literal text, or the name of a variable. */
export interface UriPart {
  readonly value: string;
  readonly variable: boolean;
}

/** How the URL of an instance is made of its fields: `{scheme}://{address}:{port}`, in parts. */
export interface UriSpec {
  readonly parts: readonly UriPart[];
}

/**
 * One instance of a service as Curator's service discovery knows it. A value: it is replaced, never changed.
 *
 * @typeParam P the payload: further facts for its readers
 */
export interface ServiceInstance<P = unknown> {
  /** The service; a znode's name. */
  readonly name: string;
  /** Distinguishes it from the other instances of the service; a znode's name. */
  readonly id: string;
  /**
   * Host name or IP address, without a port. Undefined only for instances that others registered without one.
   */
  readonly address: string | undefined;
  /** 1 … 65535. */
  readonly port: number | undefined;
  /** The port for TLS, 1 … 65535. */
  readonly sslPort: number | undefined;
  readonly payload: P | undefined;
  /**
   * When it was registered, in milliseconds since the Unix epoch by the registrant's wall clock. For people
   * only.
   */
  readonly registrationTimeUTC: number;
  readonly serviceType: ServiceType;
  readonly uriSpec: UriSpec | undefined;
  /** False for one that gets no work for the time being: queries return it, providers skip it. */
  readonly enabled: boolean;
}
