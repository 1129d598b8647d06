import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const CLUSTER = 'shop';
/** What UpdateTaskProtection takes. */
const MINUTES = { least: 1, most: 2_880 };

/** How the agent answers requests for protection. */
export type AgentMood =
  | 'answers'
  /** The task belongs to no service: a failure, with status 200. */
  | 'fails'
  /** As a proxy may, without a body. */
  | 'redirects'
  /** The role may not do that. */
  | 'refuses'
  | 'hangs';

/**
 * The agent of ECS, as it answers the containers of one task: the metadata of the task, and its protection from
 * scale-in, in the shapes that ECS documents. Unknown fields of a request are refused, as by the agent itself.
 */
export class EcsAgent {
  readonly #server: Server;
  readonly #waiting = new Set<() => void>();
  /** What was asked for, such as `on 15` and `off`. */
  readonly asked: string[] = [];
  mood: AgentMood = 'answers';

  private constructor(
    private readonly taskId: string,
    private readonly service: string | undefined,
  ) {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(taskId: string, service?: string): Promise<EcsAgent> {
    const agent = new EcsAgent(taskId, service);
    await new Promise<void>((resolve) => agent.#server.listen(0, '127.0.0.1', resolve));
    return agent;
  }

  /** The variables that ECS sets in each container. */
  get env(): Readonly<Record<string, string>> {
    const origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return { ECS_CONTAINER_METADATA_URI_V4: `${origin}/v4/0123`, ECS_AGENT_URI: `${origin}/api/0123` };
  }

  /** Resolves once protection was asked for that often. */
  async askedTimes(times: number): Promise<void> {
    while (this.asked.length < times) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse) {
    const json = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const arn = `arn:aws:ecs:eu-central-1:111122223333:task/${CLUSTER}/${this.taskId}`;
    if (request.url === '/v4/0123/task')
      return json(200, { Cluster: CLUSTER, ServiceName: this.service, TaskARN: arn });
    if (request.url !== '/api/0123/task-protection/v1/state' || request.method !== 'PUT')
      return response.writeHead(404).end('404 page not found');
    const { ProtectionEnabled: isEnabled, ExpiresInMinutes: minutes, ...unknown } = await jsonOf(request);
    const refuse = (status: number, code: string, message: string, requestID?: string) =>
      json(status, { requestID, error: { Arn: arn, Code: code, Message: message } });
    const isValid =
      typeof isEnabled === 'boolean' &&
      Object.keys(unknown).length === 0 &&
      (minutes === undefined ||
        (Number.isInteger(minutes) && minutes >= MINUTES.least && minutes <= MINUTES.most));
    if (!isValid) return refuse(400, 'InvalidParameterException', 'Invalid request');
    this.asked.push(isEnabled ? `on ${minutes}` : 'off');
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    switch (this.mood) {
      case 'answers':
        return json(200, {
          protection: {
            ExpirationDate: isEnabled ? '2026-11-29T12:00:00Z' : null,
            ProtectionEnabled: isEnabled,
            TaskArn: arn,
          },
        });
      case 'fails':
        return json(200, { failure: { Arn: arn, Detail: null, Reason: 'TASK_NOT_VALID' } });
      case 'redirects':
        return response.writeHead(307, { location: '/' }).end();
      case 'refuses':
        return refuse(
          400,
          'AccessDeniedException',
          'User is not authorized to perform: ecs:UpdateTaskProtection',
          '12345-abc',
        );
      case 'hangs':
        return undefined;
    }
  }
}

async function jsonOf(request: IncomingMessage) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}
