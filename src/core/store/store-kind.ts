import type { Setting } from '../settings/setting.js';
import type { LeaseStore } from './lease-store.js';
import type { Fail } from './url-path.js';

/** The URL of a store, taken apart. What else it has depends on its kind. */
export interface ParsedUrl {
  /** In its normal form. */
  readonly url: string;
}

/** What a parser knows of a URL in addition to its text. */
interface GivenUrl {
  readonly scheme: string;
  /** The setting that names the store. */
  readonly setting: string;
  readonly fail: Fail;
}

/** The settings that one kind of store has alone, and the option of the library with the same content. */
export interface OwnSettings {
  /** A field of `StoreAccess`: an object. */
  readonly option: string;
  /** Each with the option `<option>.<field>`. */
  readonly settings: Readonly<Record<string, Setting>>;
  /**
   * The scheme with TLS. Its files are the settings `<option>-ca`, `-cert` and `-key`, and of no use with
   * another scheme.
   */
  readonly tlsScheme?: string;
}

/** What a kind of store says of itself. Its module loads no SDK. */
export interface StoreKind<Options extends object = object> {
  /** The schemes of its URLs; the first one names the kind. */
  readonly schemes: readonly [string, ...string[]];
  /** Its URL, for messages. What precedes the last segment is the root of the store, such as a bucket. */
  readonly form: string;
  /** What `endpoint` is for this kind, for the help. @default the kind has none */
  readonly endpoint?: string;
  /** What `region` is about, for the help. @default the kind has none */
  readonly region?: string;
  /** Who shares the store: this process alone, or this host. @default all hosts that reach its server */
  readonly sharedBy?: 'process' | 'host';
  readonly own?: OwnSettings;
  /**
   * Of a cloud: where its prices are listed. Its requests are signed with the time of this host.
   * @default requests cost nothing
   */
  readonly cloudPrices?: string;
  /** Names of warnings by its SDK that errors report anyway. */
  readonly muted?: readonly string[];

  /**
   * Takes a URL apart. Its normal form is the given one without a slash at the end, unless the result has
   * another `url`.
   *
   * @param text what follows the scheme, and its slashes where the form has them
   * @throws {ConfigError} with what is wrong with it
   */
  parse(text: string, given: GivenUrl): Partial<Options> & Partial<ParsedUrl>;

  /**
   * Loads the driver and opens the store. Resolves before the store has been reached.
   * @throws {ConfigError} when an option cannot be used, or a package is not installed
   */
  open(options: Options): Promise<LeaseStore>;
}
