// What the page of services reads of what `/api/services` sends: see wire.ts.

/** See `ServicesHello`. */
export interface WireServices {
  readonly zookeeper: string;
  readonly path: string;
  readonly writes: boolean;
}

/** See `ServiceTreeStatus`. */
export interface WireServicesStatus {
  readonly state: 'ok' | 'failing';
  readonly problem: string | null;
  readonly isWhole: boolean;
  readonly isPartial: boolean;
}

/** See `ServiceEntry`. */
export interface WireService {
  readonly service: string;
  readonly id: string | null;
  readonly instance: {
    readonly address: string | null;
    readonly port: number | null;
    readonly sslPort: number | null;
    readonly serviceType: string;
    readonly state: 'enabled' | 'disabled' | 'out of service';
  } | null;
  readonly text: string | null;
  readonly sessionId: string | null;
  readonly lease: {
    readonly nodeId: number;
    readonly version: number | null;
    readonly taskId: string | null;
    readonly toldBy: 'tree' | 'payload';
    readonly otherVersion: number | null;
  } | null;
  readonly problem: string | null;
}

/** See `ServiceChanges`. */
export interface WireServiceChanges {
  readonly set: readonly (readonly [path: string, entry: WireService])[];
  readonly gone: readonly string[];
}
