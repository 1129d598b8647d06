import { isPort } from '../../../core/base/arguments.js';
import type { ServiceInstance } from './service-instance.js';

/** The class of the payload of Dubbo's instances. */
export const DUBBO_CLASS = 'org.apache.dubbo.registry.zookeeper.ZookeeperInstance';

/** The folders of an interface, which Dubbo makes among the instances where both have one root. */
const FOLDERS: readonly unknown[] = ['providers', 'consumers', 'routers', 'configurators'];

/** Whether the name of a znode that is no instance is that of a folder of Dubbo's. */
export const isDubboFolder = (name: string | undefined) => FOLDERS.includes(name);

/** What a Dubbo 3 application says of one of its instances. */
interface DubboFacts {
  /** The protocols and their ports, in Dubbo's order; if it names none, `dubbo` at the instance's port. */
  readonly endpoints: readonly DubboEndpoint[];
  /** Of the offered interfaces: a change of them changes it. */
  readonly revision: string | null;
}

interface DubboEndpoint {
  /** `dubbo` or `tri`, for example; it can be the scheme of a URL. */
  readonly protocol: string;
  readonly port: number;
}

/** Undefined for an instance that is not Dubbo's. What cannot be understood is left out. Never throws. */
export function dubboFacts({ payload, port }: ServiceInstance): DubboFacts | undefined {
  const { '@class': type, metadata } = Object(payload);
  if (type !== DUBBO_CLASS) return undefined;
  const { 'dubbo.endpoints': listed, 'dubbo.metadata.revision': revision } = Object(metadata);
  const endpoints = parseEndpoints(listed);
  if (endpoints.length === 0 && port !== undefined) endpoints.push({ protocol: 'dubbo', port });
  return { endpoints, revision: typeof revision === 'string' ? revision : null };
}

function parseEndpoints(text: string): DubboEndpoint[] {
  try {
    return JSON.parse(text).flatMap(({ protocol, port }: Partial<DubboEndpoint>) =>
      /^[a-z][a-z\d+.-]*$/.test(`${protocol}`) && isPort(port) ? { protocol, port } : [],
    );
  } catch {
    return [];
  }
}

/** In short: `dubbo:20880, tri:50051 · revision 6c3b`. Undefined for an instance that is not Dubbo's. */
export function dubboText(instance: ServiceInstance): string | undefined {
  const facts = dubboFacts(instance);
  const ports = facts?.endpoints.map(({ protocol, port }) => `${protocol}:${port}`);
  return ports && `${ports.join(', ')} · revision ${facts?.revision?.slice(0, 4) ?? 'unknown'}`;
}
