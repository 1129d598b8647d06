/** A setting of the infrastructure is wrong, by itself or together with another one. */
export class SettingError extends Error {
  /**
   * @param setting the setting as its user wrote it, for example `stopTimeout`
   * @param value what was given
   * @param expected what would have been right and why, as the rest of the sentence "expected …"
   */
  constructor(
    readonly setting: string,
    readonly value: unknown,
    readonly expected: string,
  ) {
    super(
      `${setting}: expected ${expected}, got ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`,
    );
    this.name = 'SettingError';
  }
}
