import { App } from 'aws-cdk-lib';
import { readAppSettings } from '../lib/app-settings.js';
import { NodeLeaseStack } from '../lib/node-lease-stack.js';
import { SettingError } from '../lib/setting-error.js';

try {
  const app = new App();
  new NodeLeaseStack(app, 'Nodelease', { settings: readAppSettings(app.node) });
} catch (error) {
  if (!(error instanceof SettingError)) throw error;
  process.stderr.write(`nodelease-infra: ${error.message}\n`);
  process.exitCode = 64;
}
