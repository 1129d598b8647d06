/**
 * What a scrape of `/metrics` is answered with.
 *
 * The HTTP application knows no more of metrics than this: whatever can write itself as text may be
 * served, and the library that does the writing is loaded only by those who ask for it.
 */
export interface MetricsText {
  /** The media type of the text, with its format's version and charset; what `Content-Type` says. */
  readonly contentType: string;
  /**
   * @returns all metrics as they are at the time of the asking; values that change by themselves
   *   (seconds to a deadline) are computed now and not at the last event
   */
  text(): Promise<string>;
}
