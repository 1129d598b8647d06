// What is used of packages that come without types.

declare module 'flake-idgen' {
  export default class FlakeId {
    constructor(options?: { id?: number; epoch?: number });

    /** Eight bytes, the highest first. Throws when the millisecond's 4,096 are used up. */
    next(): Buffer;
  }
}
