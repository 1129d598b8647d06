import { describeChance } from './registrations-suite.js';

describeChance([9, 13, 31]);
