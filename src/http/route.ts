import type { Context, Hono } from 'hono';
import { HttpProblem } from './problem.js';

/** Answers a request, or throws what it is refused for. */
export type Handle = (context: Context) => Promise<Response> | Response;

/** A route and its methods; any other one is answered with 405. HEAD is GET without the body. */
export function route(app: Hono, path: string, methods: Readonly<Partial<Record<'GET' | 'PUT' | 'DELETE', Handle>>>): void {
  for (const [method, handle] of Object.entries(methods)) app.on(method, path, handle);
  const allow = Object.keys(methods).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  app.all(path, ({ req }) => {
    throw new HttpProblem('method-not-allowed', `method: expected ${allow.join(', ')}, got ${req.method}`, { allow: allow.join(', ') });
  });
}
