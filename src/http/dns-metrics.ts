import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricsText } from './node-app.js';

/** A reply to a DNS query, as it is counted. */
export interface CountedReply {
  readonly type: string;
  readonly code: string;
  readonly truncated: boolean;
}

/** The metrics of answered DNS questions, in the text format of Prometheus. */
export class DnsMetrics implements MetricsText {
  /** How long changes may have gone unnoticed, in milliseconds. */
  staleMs: () => number = () => 0;
  readonly #registry = new Registry();
  /** By type and code. A counter of prom-client takes longer than an answer. */
  readonly #questions = new Map<string, Map<string, number>>();
  #truncated = 0;

  constructor() {
    const registers = [this.#registry];
    const questions = new Counter({
      ...{
        name: 'nodelease_dns_questions_total',
        help: 'Answered DNS questions, by type and response code.',
      },
      ...{ labelNames: ['type', 'code'], registers },
      collect: () => {
        questions.reset();
        for (const [type, codes] of this.#questions)
          for (const [code, count] of codes) questions.inc({ type, code }, count);
      },
    });
    const truncated = new Counter({
      ...{
        name: 'nodelease_dns_truncated_replies_total',
        help: 'DNS replies that did not have room for all answers.',
      },
      registers,
      collect: () => {
        truncated.reset();
        truncated.inc(this.#truncated);
      },
    });
    const age: Gauge = new Gauge({
      name: 'nodelease_dns_data_age_seconds',
      help: 'How long changes in ZooKeeper or the store may have gone unnoticed: 0 while they are seen.',
      registers,
      collect: () => age.set(this.staleMs() / 1_000),
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  count({ type, code, truncated }: CountedReply): void {
    const codes = this.#questions.get(type) ?? new Map<string, number>();
    this.#questions.set(type, codes.set(code, (codes.get(code) ?? 0) + 1));
    if (truncated) this.#truncated += 1;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
