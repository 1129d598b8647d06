import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type DecodedPacket, decode, encode, type Question } from 'dns-packet';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { encodeInstance } from '../../../../src/zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { TestProcess } from '../../../support/processes.js';
import { instanceOf } from '../../../support/service-instances.js';

const LISTENS_WITHIN_MS = 30_000;

/** Registers an instance as Curator does. */
export async function register(
  zookeeper: ZooKeeperClient,
  service: string,
  id: string,
  facts: Partial<ReturnType<typeof instanceOf>>,
): Promise<void> {
  const instance = { ...instanceOf(id), name: service, ...facts };
  await zookeeper.createWithParents(
    `/services/${service}/${id}`,
    encodeInstance(instance, jsonPayload),
    'persistent',
  );
}

/** Where `nodelease dns` answers. */
export async function listening(server: TestProcess): Promise<string> {
  const [, address = ''] = await server.waitForOutput(/^(127\.0\.0\.1:\d+)$/m, LISTENS_WITHIN_MS);
  return address;
}

/** Where `serve` and `discovery serve` say that they answer. */
export async function listeningToo(server: TestProcess): Promise<string> {
  const [, address = ''] = await server.waitForOutput(
    /answering DNS for \S+ at (127\.0\.0\.1:\d+)/,
    LISTENS_WITHIN_MS,
  );
  return address;
}

/** A resolver as programs have one, which takes what does not fit by TCP. */
export function resolverOf(address: string): Resolver {
  const resolver = new Resolver({ timeout: 5_000, tries: 2 });
  resolver.setServers([address]);
  return resolver;
}

/** The response code of a question, or the number of its answers. */
export async function outcome(
  address: string,
  name: string,
  type: Question['type'] = 'A',
): Promise<string | number> {
  const packet = await ask(address, { name, type });
  const codes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];
  const code = codes[(packet.flags ?? 0) & 0xf] ?? 'other';
  return code === 'NOERROR' ? (packet.answers?.length ?? 0) : code;
}

/** One question by UDP, and what comes back. */
export async function ask(address: string, question: Question): Promise<DecodedPacket> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
  const socket = createSocket('udp4');
  try {
    const answered = once(socket, 'message') as Promise<[Buffer]>;
    socket.send(encode({ type: 'query', id: 1, questions: [question] }), Number(port), host);
    return decode((await answered)[0]);
  } finally {
    socket.close();
  }
}

/** Reads messages of DNS by TCP, as they come. */
export async function* messagesOf(socket: Socket): AsyncGenerator<DecodedPacket> {
  let rest = Buffer.alloc(0);
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const end = 2 + rest.readUInt16BE(0);
      yield decode(rest.subarray(2, end));
      rest = rest.subarray(end);
    }
  }
}
