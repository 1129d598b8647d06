import type { InstanceFacts, ServiceEntry } from '../../src/node/wire/entries-wire.js';

/** An instance of the service `orders` that gets work. */
export const ENABLED: InstanceFacts = {
  id: 'a',
  claim: null,
  address: '10.0.0.1',
  port: 80,
  sslPort: null,
  serviceType: 'DYNAMIC',
  state: 'enabled',
};

/**
 * An entry of the page of services: of the service `orders` itself, or of something below it.
 * @param id null for the service itself
 */
export function serviceEntry(id: string | null, facts: Partial<ServiceEntry> = {}): ServiceEntry {
  return {
    service: 'orders',
    id,
    instance: id === null ? null : ENABLED,
    text: null,
    sessionId: null,
    changedAt: null,
    node: null,
    problem: null,
    ...facts,
  };
}
