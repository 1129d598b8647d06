import { describeChance } from './registrations-suite.js';

describeChance([1]);
