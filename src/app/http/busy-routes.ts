import type { taskProtection } from '../../core/base/host/task-protection.js';
import type { NodeAppPart } from './node-app.js';
import { jsonAnswer, route } from './problem.js';

/** `/busy`: while the program says that it is at work, the task is protected from scale-in. */
export function busyRoutes(protect: ReturnType<typeof taskProtection>): NodeAppPart {
  const say = (isBusy: boolean) => async () => jsonAnswer({ protected: await protect(isBusy) });
  return {
    protects: ['/busy'],
    mount: (app) => route(app, '/busy', { POST: say(true), DELETE: say(false) }),
  };
}
