import { describe, expect, it } from 'vitest';
import { EventStreamParser } from './event-stream.js';

const STREAM =
  'retry: 1000\n\nevent: hello\ndata: {"a":1}\n\n: heartbeat\n\nid: 7\r\nevent:change\r\ndata:one\r\ndata: two\r\n\r\ndata\rdata: x\r\rdata: unfinished\n';
const EVENTS = [
  { event: 'hello', data: '{"a":1}' },
  { event: 'change', data: 'one\ntwo' },
  { event: 'message', data: '\nx' },
];

describe('a stream of server-sent events', () => {
  it('is read the same however it is cut into pieces', () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
      const parser = new EventStreamParser();
      const events = [];
      for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
      expect(events, `pieces of ${size}`).toEqual(EVENTS);
    }
  });

  it('may go on for as long as it wants, whole event by whole event', () => {
    const parser = new EventStreamParser();
    const event = `data: ${'x'.repeat(1_000_000)}\n\n`;
    let count = 0;
    for (let index = 0; index < 100; index += 1) count += parser.push(event).length;
    expect(count).toBe(100);
  });

  it('has an event whose data stand in several lines as one', () => {
    const [hello] = new EventStreamParser().push('event: hello\ndata: {"epoch":"a",\ndata: "report":null,\ndata: "events":[]}\n\n');
    expect(JSON.parse(hello?.data ?? '')).toEqual({ epoch: 'a', report: null, events: [] });
  });

  it('that never ends an event is given up before it fills the memory', () => {
    const parser = new EventStreamParser();
    const piece = 'x'.repeat(1_000_000);
    expect(() => {
      for (let index = 0; index < 100; index += 1) parser.push(piece);
    }).toThrow(RangeError);
  });
});
