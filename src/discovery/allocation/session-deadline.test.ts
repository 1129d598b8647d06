import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { SessionDeadline } from './session-deadline.js';

const T = 12_000;

/** Heartbeats at these times, each answered after `latencyMs`. */
function proofOf(times: readonly number[], latencyMs = 10): SessionDeadline {
  const proof = new SessionDeadline(T);
  for (const time of times) proof.answered(time, time + latencyMs);
  return proof;
}

describe('the time until which a session surely lives', () => {
  it('is in the past before anything was answered', () => {
    expect(new SessionDeadline(T).until).toBe(Number.NEGATIVE_INFINITY);
  });

  it('is half a time-out after the sending of a heartbeat, once heartbeats have come every sixth of it for a while', () => {
    const proof = proofOf([0, 2_000, 4_000, 6_000]);
    expect([proof.sentAt, proof.until]).toEqual([6_000, 6_000 + T / 2]);
  });

  it('is a third of a time-out after a first write, since the client may have been silent before', () => {
    expect(proofOf([1_000]).until).toBe(1_000 + T / 3);
  });

  it('counts from the sending, however late the answer comes', () => {
    expect(proofOf([0, 2_000, 4_000, 6_000], 1_000).until).toBe(6_000 + T / 2);
  });

  it('is cut where a heartbeat followed another one that may not have been relayed, after a long silence', () => {
    // At 7,000 and 7,100 perhaps nothing had been told to the leader since 1,000: from there it counts a whole time-out.
    expect(proofOf([0, 1_000, 7_000, 7_100]).until).toBe(1_000 + (T * 11) / 12);
  });

  it('never goes back by a further answer', () => {
    const random = seededRandom(1);
    for (let run = 0; run < 200; run += 1) {
      const proof = new SessionDeadline(T);
      let now = 0;
      let until = Number.NEGATIVE_INFINITY;
      for (let i = 0; i < 30; i += 1) {
        const sentAt = now + random.next() * 3_000;
        now = sentAt + random.next() * 2_000;
        proof.answered(sentAt, now);
        expect(proof.until).toBeGreaterThanOrEqual(until);
        until = proof.until;
      }
    }
  });

  it('is cut to half of a shorter time-out that another server grants, and not extended by a longer one', () => {
    const proof = proofOf([0, 2_000, 4_000]);
    proof.limit(2 * T);
    expect([proof.timeoutMs, proof.until]).toEqual([T, 4_000 + T / 2]);
    proof.limit(T / 2);
    expect([proof.timeoutMs, proof.until]).toEqual([T / 2, 4_000 + T / 4]);
  });

  /**
   * A model of what the proof is about: a follower tells the leader of the sessions it has heard of each time it is pinged, every half
   * tick; the leader ends a session when it has not heard of it for the time-out; after the last answer the follower is cut off.
   */
  it('ends before the leader ends the session, whenever the follower is cut off from the leader', () => {
    const random = seededRandom(7);
    let closest = Number.POSITIVE_INFINITY;
    for (let run = 0; run < 20_000; run += 1) {
      const halfTick = (T / 4) * (0.2 + 0.8 * random.next());
      const phase = random.next() * halfTick;
      const proof = new SessionDeadline(T);
      // The client has been silent for as long as its pings allow, or less.
      const reached: number[] = [-random.next() * (T / 3)];
      let now = 0;
      const beats = 1 + Math.floor(random.next() * 8);
      for (let beat = 0; beat < beats; beat += 1) {
        const sentAt = now;
        const arrivesAt = sentAt + random.next() ** 4 * 500;
        const answeredAt = arrivesAt + random.next() ** 4 * 1_500;
        reached.push(arrivesAt);
        proof.answered(sentAt, answeredAt);
        const regular = Math.max(answeredAt, sentAt + T / 6);
        now = random.next() < 0.3 ? regular + random.next() * (proof.until - T / 12 - regular) : regular;
        if (now > proof.until - T / 12) break;
      }
      // The follower still stood in line when the last write reached it. It told of what reached it before its last ping before that.
      const last = reached.at(-1) as number;
      const lastPing = Math.floor((last - phase) / halfTick) * halfTick + phase;
      const heard = reached.filter((time) => time <= lastPing);
      const heardAt = heard.at(-1) ?? (reached[0] as number);
      const endsAt = heardAt + T;
      closest = Math.min(closest, endsAt - proof.until);
    }
    expect(closest).toBeGreaterThan(0);
    // Not so careful that the model could not catch anything: a time-out of a twelfth is all that is kept in hand.
    expect(closest).toBeLessThan(T / 6);
  });
});
