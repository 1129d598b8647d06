import { type Client, CreateMode, createClient } from 'node-zookeeper-client';

/**
 * The baseline: a client of the library as it is, its calls as promises. For measurements of single calls
 * there is the library itself.
 */
export class PlainClient {
  private constructor(readonly library: Client) {}

  /** @param connect servers and chroot; the chroot must exist */
  static async open(connect: string): Promise<PlainClient> {
    const library = createClient(connect, { sessionTimeout: 10_000, retries: 0 });
    await new Promise<void>((resolve) => {
      library.once('connected', resolve);
      library.connect();
    });
    return new PlainClient(library);
  }

  create(path: string, data: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.library.create(path, Buffer.from(data), CreateMode.EPHEMERAL, (error, made) =>
        error ? reject(error) : resolve(made),
      );
    });
  }

  setData(path: string, data: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.library.setData(path, Buffer.from(data), -1, (error) => (error ? reject(error) : resolve()));
    });
  }

  remove(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.library.remove(path, -1, (error) => (error ? reject(error) : resolve()));
    });
  }

  read(path: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.library.getData(path, (error, data) => (error ? reject(error) : resolve(data)));
    });
  }

  /** Ends the session. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.library.once('disconnected', resolve);
      this.library.close();
    });
  }
}
