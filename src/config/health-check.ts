export type { CheckSettings, CheckTarget } from '../settings/check-target.js';
