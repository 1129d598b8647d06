import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What is wrong with a stand-in, for as long as it is set. All off at the start. */
export interface StandInFaults {
  ignoreIfNoneMatch: boolean;
  ignoreIfMatch: boolean;
  /** Knows etags only without the quotes in which it gives them. */
  unquotedEtags: boolean;
  /**
   * Looks, waits this many milliseconds, and then writes whatever happened meanwhile; 0 for atomic writes.
   */
  gapMs: number;
  /** Answers 500 where a condition failed, as some servers do. */
  losersGet500: boolean;
  /** Waits this many milliseconds before every reply. */
  delayMs: number;
  /** Leaves the `Last-Modified` header of objects out, or sends this instead. */
  lastModified: string | false | undefined;
  /** How far its clock is ahead of this machine's, in milliseconds: with it a test lets its time pass. */
  aheadMs: number;
  /**
   * Sends a `Date` header that is this many milliseconds old, as servers do that make one every second or
   * two.
   */
  lateDateMs: number;
  /** Gives every object the time of the reply as its `Last-Modified`. */
  neverAges: boolean;
  /** Gives reads the state before the last write. */
  staleReads: boolean;
  /** Lists nothing. */
  emptyListings: boolean;
  /** Refuses to remove anything. */
  refuseDeletes: boolean;
  /** Keys on one page of a listing. */
  pageSize: number;
}

/** What happens to the next request instead of what should. */
export type NextReply =
  /** Not carried out, answered like this. `code` makes it an S3 error; without it `body` is sent. */
  | {
      readonly status: number;
      readonly code?: string;
      readonly body?: string;
      readonly headers?: Record<string, string>;
    }
  | 'as-usual'
  /** The connection is destroyed: before anything was done, or when it has been done. */
  | 'drop-request'
  | 'drop-reply'
  /** Never answered; carried out nevertheless. */
  | 'stall'
  /** The head of the reply and half of its body are sent, then nothing. */
  | 'stall-body';

/** One request as it arrived. */
export interface RecordedRequest {
  readonly method: string;
  /** Without the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Distinguishes connections. */
  readonly clientPort: number | undefined;
}

interface Kept {
  readonly body: Buffer;
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly modified: Date;
}

const BUCKET = 'bucket';

/**
 * A server that speaks as much S3 as a lease store needs, for the faults that a real one does not show on
 * demand. It has one bucket, `bucket`.
 */
export class S3StandIn {
  readonly faults: StandInFaults = {
    ignoreIfNoneMatch: false,
    ignoreIfMatch: false,
    unquotedEtags: false,
    gapMs: 0,
    losersGet500: false,
    delayMs: 0,
    lastModified: undefined,
    aheadMs: 0,
    lateDateMs: 0,
    neverAges: false,
    staleReads: false,
    emptyListings: false,
    refuseDeletes: false,
    pageSize: 1000,
  };
  /** Every request that arrived, the oldest first. */
  readonly requests: RecordedRequest[] = [];
  readonly #server: Server;
  readonly #objects = new Map<string, Kept>();
  readonly #before = new Map<string, Kept | undefined>();
  readonly #next: NextReply[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      this.#serve(request, response).catch((error: unknown) =>
        response.destroy(error instanceof Error ? error : undefined),
      );
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(): Promise<S3StandIn> {
    // A connection that is idle stays: one that is closed just when a request is sent would be a fault that
    // no test has asked for.
    const server = createServer({ keepAliveTimeout: 0 });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new S3StandIn(server);
  }

  readonly bucket = BUCKET;

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Keys that are kept, the bucket's prefixes included. */
  get keys(): string[] {
    return [...this.#objects.keys()].sort();
  }

  /** Queues what happens to the next request, or to the next few. */
  next(...replies: NextReply[]): void {
    this.#next.push(...replies);
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #now(): number {
    return Date.now() + this.faults.aheadMs;
  }

  async #delayed(): Promise<void> {
    if (this.faults.delayMs > 0) await pause(this.faults.delayMs);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request);
    const url = new URL(request.url ?? '/', this.endpoint);
    const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/.exec(decodeURIComponent(url.pathname)) ?? [];
    const { method = '', headers, socket } = request;
    this.requests.push({ method, key, query: url.searchParams, headers, clientPort: socket.remotePort });
    response.setHeader('date', new Date(this.#now() - this.faults.lateDateMs).toUTCString());
    const next = this.#next.shift();
    if (next === 'drop-request') return void response.destroy();
    if (typeof next === 'object') {
      await this.#delayed();
      const content = next.code === undefined ? (next.body ?? '') : errorXml(next.code);
      return void response.writeHead(next.status, next.headers).end(content);
    }
    const answer =
      bucket === BUCKET
        ? await this.#answer(request, key, url.searchParams, body)
        : failure(404, 'NoSuchBucket');
    // What is asked for is done by now: a client that gives the reply up finds it done.
    await this.#delayed();
    if (next === 'drop-reply') return void response.destroy();
    if (next === 'stall') return;
    response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length });
    if (next === 'stall-body') return void response.write(answer.body.subarray(0, answer.body.length / 2));
    response.end(answer.body);
  }

  async #answer(
    request: IncomingMessage,
    key: string,
    query: URLSearchParams,
    body: Buffer,
  ): Promise<Answer> {
    switch (request.method) {
      case 'PUT':
        return this.#put(key, body, request.headers);
      case 'GET':
        return key === '' ? this.#list(query) : this.#get(key);
      case 'DELETE':
        if (this.faults.refuseDeletes) return failure(403, 'AccessDenied');
        this.#objects.delete(key);
        return { status: 204, headers: {}, body: Buffer.alloc(0) };
      default:
        return failure(405, 'MethodNotAllowed');
    }
  }

  async #put(key: string, body: Buffer, headers: IncomingMessage['headers']): Promise<Answer> {
    const present = this.#objects.get(key);
    const ifMatch = this.faults.ignoreIfMatch ? undefined : headers['if-match'];
    const ifNoneMatch = this.faults.ignoreIfNoneMatch ? undefined : headers['if-none-match'];
    if (ifMatch !== undefined && present === undefined) return failure(404, 'NoSuchKey');
    const etagKept = this.faults.unquotedEtags ? present?.etag.replaceAll('"', '') : present?.etag;
    if ((ifMatch !== undefined && ifMatch !== etagKept) || (ifNoneMatch === '*' && present !== undefined)) {
      return this.faults.losersGet500 ? failure(500, 'InternalError') : failure(412, 'PreconditionFailed');
    }
    if (this.faults.gapMs > 0) await pause(this.faults.gapMs);
    const metadata = Object.fromEntries(
      Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-')),
    ) as Record<string, string>;
    const etag = `"${createHash('md5').update(body).digest('hex')}"`;
    this.#before.set(key, present);
    this.#objects.set(key, { body, etag, metadata, modified: new Date(this.#now()) });
    return { status: 200, headers: { etag }, body: Buffer.alloc(0) };
  }

  #get(key: string): Answer {
    const object = this.faults.staleReads ? this.#before.get(key) : this.#objects.get(key);
    if (object === undefined) return failure(404, 'NoSuchKey');
    const modified =
      this.faults.lastModified ??
      (this.faults.neverAges ? new Date(this.#now()) : object.modified).toUTCString();
    const headers = {
      etag: object.etag,
      ...object.metadata,
      ...(modified === false ? {} : { 'last-modified': modified }),
    };
    return { status: 200, headers, body: object.body };
  }

  #list(query: URLSearchParams): Answer {
    const prefix = query.get('prefix') ?? '';
    const from = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const keys = this.keys.filter(
      (key) => key.startsWith(prefix) && !key.slice(prefix.length).includes('/') && key > from,
    );
    const page = this.faults.emptyListings ? [] : keys.slice(0, this.faults.pageSize);
    const rows = page.map((key) => {
      const { etag, body, modified } = this.#objects.get(key) as Kept;
      return `<Contents><Key>${key}</Key><ETag>${etag.replaceAll('"', '&quot;')}</ETag><Size>${body.length}</Size><LastModified>${modified.toISOString()}</LastModified></Contents>`;
    });
    const truncated = page.length > 0 && page.length < keys.length;
    const more = truncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    const xml = `<ListBucketResult><IsTruncated>${truncated}</IsTruncated>${more}${rows.join('')}</ListBucketResult>`;
    return { status: 200, headers: { 'content-type': 'application/xml' }, body: Buffer.from(xml) };
  }
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

function failure(status: number, code: string): Answer {
  return { status, headers: { 'content-type': 'application/xml' }, body: Buffer.from(errorXml(code)) };
}

function errorXml(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>The stand-in says ${code}.</Message></Error>`;
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
