import { createRequire } from 'node:module';
import * as bundled from '../../core/store/s3/sdk.js';
import { mayHaveSdk } from '../../node/runtime/preloaded-sdk.js';

// Takes the place of `store/s3/sdk.ts` in the bundle (rolldown.config.js). A preloaded OpenTelemetry SDK
// instruments the installed package, and not the copy of it in the bundle: then the installed one is loaded.
const isInstrumented = mayHaveSdk(process.execArgv, process.env.NODE_OPTIONS);
const sdk: typeof bundled = isInstrumented ? createRequire(import.meta.url)('@aws-sdk/client-s3') : bundled;

export const {
  CreateSessionCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} = sdk;
