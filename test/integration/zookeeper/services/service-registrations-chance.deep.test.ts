import { describeChance } from './registrations-suite.js';

describeChance([1, 9, 13, 31]);
