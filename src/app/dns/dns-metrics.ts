import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricsText } from '../http/node-app.js';
import type { Reply } from './message.js';

/**
 * The metrics of answered DNS questions, in the text format of Prometheus; `count` counts a reply.
 *
 * @param staleMs how long changes may have gone unnoticed, in milliseconds
 */
export function dnsMetrics(staleMs: () => number) {
  const registry = new Registry();
  const registers = [registry];
  const questions = new Counter({
    name: 'nodelease_dns_questions_total',
    help: 'Answered DNS questions, by type and response code.',
    labelNames: ['type', 'code'],
    registers,
  });
  const truncations = new Counter({
    name: 'nodelease_dns_truncated_replies_total',
    help: 'DNS replies that did not have room for all answers.',
    registers,
  });
  const age: Gauge = new Gauge({
    name: 'nodelease_dns_data_age_seconds',
    help: 'How long changes in ZooKeeper or the store may have gone unnoticed: 0 while they are seen.',
    registers,
    collect: () => age.set(staleMs() / 1_000),
  });
  const count = ({ type, code, truncated }: Pick<Reply, 'type' | 'code' | 'truncated'>) => {
    questions.inc({ type, code });
    if (truncated) truncations.inc();
  };
  const metrics: MetricsText = { contentType: registry.contentType, text: () => registry.metrics() };
  return { ...metrics, count };
}
