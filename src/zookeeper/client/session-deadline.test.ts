import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { SessionActivity } from './connection/session-activity.js';
import { SessionDeadline } from './session-deadline.js';

const T = 12_000;

/** Heartbeats at these times, each answered after `latencyMs`, in a session that was opened at `askedAt`. */
function proofOf(
  times: readonly number[],
  { latencyMs = 10, askedAt = Number.NEGATIVE_INFINITY } = {},
): SessionDeadline {
  const activity = new SessionActivity();
  activity.begin(askedAt, T);
  const proof = new SessionDeadline(T, (at) => activity.heardBy(at));
  for (const time of times) {
    activity.answered(time, time + latencyMs);
    proof.answered(time);
  }
  return proof;
}

describe('the time until which a session surely lives', () => {
  it('is in the past before anything was answered', () => {
    expect(proofOf([]).until).toBe(Number.NEGATIVE_INFINITY);
  });

  it('is half a time-out after the sending of a heartbeat, once heartbeats have come every sixth of it for a while', () => {
    const proof = proofOf([0, 2_000, 4_000, 6_000]);
    expect([proof.sentAt, proof.until]).toEqual([6_000, 6_000 + T / 2]);
  });

  it('is half a time-out after a write in a session that was just opened: the leader itself has heard of that', () => {
    expect(proofOf([1_000], { askedAt: 900 }).until).toBe(1_000 + T / 2);
  });

  it('is a third of a time-out after a write in an idle session, whose client was silent for a third', () => {
    expect(proofOf([0, 4_000 + T / 4], { latencyMs: 0 }).until).toBe((T * 11) / 12);
  });

  it('is no time that a process can rely on after a pause: the leader may never have learned of its last request', () => {
    // Sent at 7,000, but its answer is read only after the pause. That does not show when it was answered.
    const activity = new SessionActivity();
    activity.begin(0, T);
    activity.answered(2_000, 2_010);
    activity.answered(7_000, 17_000);
    const proof = new SessionDeadline(T, (at) => activity.heardBy(at));
    proof.answered(17_100);
    expect(proof.until).toBe(2_000 + (T * 11) / 12);
  });

  it('counts from the sending, however late the answer comes', () => {
    expect(proofOf([0, 2_000, 4_000, 6_000], { latencyMs: 1_000 }).until).toBe(6_000 + T / 2);
  });

  it('is cut if a heartbeat followed another one that may not have been relayed, after a long silence', () => {
    // At 7,000 and 7,100 the leader may have heard nothing since 1,000: from there it counts a whole
    // time-out.
    expect(proofOf([0, 1_000, 7_000, 7_100]).until).toBe(1_000 + (T * 11) / 12);
  });

  it('never goes back by a further answer', () => {
    const random = seededRandom(1);
    for (let run = 0; run < 200; run += 1) {
      const activity = new SessionActivity();
      const proof = new SessionDeadline(T, (at) => activity.heardBy(at));
      let now = 0;
      let until = Number.NEGATIVE_INFINITY;
      for (let i = 0; i < 30; i += 1) {
        const sentAt = now + random.next() * 3_000;
        now = sentAt + random.next() * 2_000;
        activity.answered(sentAt, now);
        proof.answered(sentAt);
        expect(proof.until).toBeGreaterThanOrEqual(until);
        until = proof.until;
      }
    }
  });

  it('is cut to a shorter time-out that another server grants, by what the leader has heard, and not extended by a longer one', () => {
    const proof = proofOf([0, 2_000, 4_000]);
    proof.limit(2 * T);
    expect([proof.timeoutMs, proof.until]).toEqual([T, 4_000 + T / 2]);
    proof.limit(T / 2);
    expect([proof.timeoutMs, proof.until]).toEqual([T / 2, ((T / 2) * 11) / 12]);
    proof.limit(T / 2);
    proof.limit(T);
    expect([proof.timeoutMs, proof.until]).toEqual([T / 2, ((T / 2) * 11) / 12]);
  });

  /**
   * A model for the proof. At each ping, every half tick, a follower reports to the leader the sessions that
   * it has heard of. The leader ends a session when it has not heard of it for the time-out. After the last
   * answer the follower is cut off.
   */
  it('ends before the leader ends the session, whenever the follower is cut off from the leader', () => {
    const random = seededRandom(7);
    let closest = Number.POSITIVE_INFINITY;
    for (let run = 0; run < 20_000; run += 1) {
      const halfTick = (T / 4) * (0.2 + 0.8 * random.next());
      const phase = random.next() * halfTick;
      const activity = new SessionActivity();
      const proof = new SessionDeadline(T, (at) => activity.heardBy(at));
      // The session was opened a while ago, and then the process was paused; or the first request follows at
      // once.
      const askedAt = -random.next() * T;
      activity.begin(askedAt, T);
      const reached: number[] = [askedAt];
      // The follower is up to date when a write reaches it. It has reported what reached it before its last
      // ping.
      const noticedBy = (time: number) =>
        reached.findLast((at) => at <= Math.floor((time - phase) / halfTick) * halfTick + phase) ?? askedAt;
      let now = 0;
      const beats = 1 + Math.floor(random.next() * 8);
      for (let beat = 0; beat < beats; beat += 1) {
        const sentAt = now;
        const arrivesAt = sentAt + random.next() ** 4 * 500;
        // The leader has ended the session.
        if (arrivesAt > noticedBy(arrivesAt) + T) break;
        // The process may be paused before it reads the answer.
        const answeredAt =
          arrivesAt + random.next() ** 4 * 1_500 + (random.next() < 0.1 ? random.next() * T : 0);
        reached.push(arrivesAt);
        activity.answered(sentAt, answeredAt);
        proof.answered(sentAt);
        const regular = Math.max(answeredAt, sentAt + T / 6);
        now =
          random.next() < 0.3
            ? regular + random.next() * Math.max(0, proof.until - T / 12 - regular)
            : regular;
      }
      closest = Math.min(closest, noticedBy(reached.at(-1) as number) + T - proof.until);
    }
    expect(closest).toBeGreaterThan(0);
    // Not so careful that the model could not catch anything: a time-out of a twelfth is all that is kept in
    // hand.
    expect(closest).toBeLessThan(T / 6);
  });
});
