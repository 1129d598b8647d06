import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricsText } from '../http/node-app.js';

/** A reply to a DNS query, as it is counted. */
interface CountedReply {
  readonly type: string;
  readonly code: string;
  readonly truncated: boolean;
}

/** The metrics of answered DNS questions, in the text format of Prometheus. */
export class DnsMetrics implements MetricsText {
  readonly #registry = new Registry();
  readonly #questions = new Counter({
    name: 'nodelease_dns_questions_total',
    help: 'Answered DNS questions, by type and response code.',
    labelNames: ['type', 'code'],
    registers: [this.#registry],
  });
  readonly #truncated = new Counter({
    name: 'nodelease_dns_truncated_replies_total',
    help: 'DNS replies that did not have room for all answers.',
    registers: [this.#registry],
  });

  /** @param staleMs how long changes may have gone unnoticed, in milliseconds */
  constructor(staleMs: () => number) {
    const age: Gauge = new Gauge({
      name: 'nodelease_dns_data_age_seconds',
      help: 'How long changes in ZooKeeper or the store may have gone unnoticed: 0 while they are seen.',
      registers: [this.#registry],
      collect: () => age.set(staleMs() / 1_000),
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  count({ type, code, truncated }: CountedReply): void {
    this.#questions.inc({ type, code });
    if (truncated) this.#truncated.inc();
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
