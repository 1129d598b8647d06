import type { Clock } from '../../../src/core/base/clock.js';
import type {
  LeaseStore,
  ListedObject,
  ObjectMetadata,
  StoredObject,
  WriteResult,
} from '../../../src/core/store/lease-store.js';

interface Kept {
  readonly body: string;
  readonly metadata: ObjectMetadata;
  readonly etag: string;
  readonly writtenAt: number;
}

/** A store in memory that goes back to a copy of its objects, with their etags, and tells its epoch. */
export class RewindableStore implements LeaseStore {
  readonly url = 'rewindable:';
  readonly remote = false;
  readonly timeStepMs = 0;
  #objects = new Map<string, Kept>();
  #writes = 0;
  #epoch = 1;
  /** Called before each request. */
  before: (operation: 'read' | 'list' | 'write' | 'epoch', key?: string) => void = () => undefined;

  constructor(private readonly clock: Clock) {}

  save(): ReadonlyMap<string, Kept> {
    return new Map(this.#objects);
  }

  goBack(to: ReadonlyMap<string, Kept>): void {
    this.#objects = new Map(to);
    this.#epoch += 1;
  }

  async epoch(): Promise<string> {
    this.before('epoch');
    return `epoch ${this.#epoch}`;
  }

  async read(key: string): Promise<StoredObject | undefined> {
    this.before('read', key);
    return this.#shown(key);
  }

  async list() {
    this.before('list');
    const objects = [...this.#objects.keys()].sort().map((key): ListedObject => {
      const { etag, age, body } = this.#shown(key) as StoredObject;
      return { key, etag, age, size: Buffer.byteLength(body) };
    });
    return { objects, storeTime: this.#now() };
  }

  create(key: string, body: string, metadata: ObjectMetadata): Promise<WriteResult> {
    return this.#write(key, body, metadata, undefined);
  }

  replace(key: string, body: string, metadata: ObjectMetadata, etag: string): Promise<WriteResult> {
    return this.#write(key, body, metadata, etag);
  }

  async discardProbe(): Promise<void> {}
  async close(): Promise<void> {}

  async #write(key: string, body: string, metadata: ObjectMetadata, expected: string | undefined) {
    this.before('write', key);
    if (this.#objects.get(key)?.etag !== expected) return { status: 'conflict' } as const;
    this.#writes += 1;
    const etag = `etag ${this.#writes}`;
    this.#objects.set(key, { body, metadata, etag, writtenAt: this.clock.monotonic() });
    return { status: 'written', etag, storeTime: this.#now() } as const;
  }

  #shown(key: string): StoredObject | undefined {
    const kept = this.#objects.get(key);
    if (kept === undefined) return undefined;
    const age = this.clock.monotonic() - kept.writtenAt;
    return { ...kept, key, age: { min: age, max: age }, storeTime: this.#now() };
  }

  #now() {
    return { min: this.clock.now(), max: this.clock.now() };
  }
}
