import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { type ContainerAccess, ContainerEngine } from './container-engine.js';
import { buildImage, cleanCopy } from './product-image.js';
import { startEngine } from './start-engine.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** What runs containers in this run: `inject('containers')`. */
    containers: ContainerAccess;
  }
}

/** What the image is called that is built for the tests. Not `nodelease`, which may be somebody's own. */
export const TEST_IMAGE = 'localhost/nodelease-test';

/**
 * Starts what runs containers, and builds the image from a clean copy of the tree, once for all tests that
 * need it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { access, description, stop } = await startEngine();
  process.stderr.write(`Containers of this run: ${description}\n`);
  try {
    const tree = await cleanCopy();
    try {
      await buildImage(new ContainerEngine(access), TEST_IMAGE, tree, 'infra/docker/Dockerfile');
    } finally {
      await rm(tree, { recursive: true, force: true });
    }
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('containers', access);
  return stop;
}
