import type { Setting } from '../settings/setting.js';
import type { LeaseStore } from './lease-store.js';
import type { Fail } from './url-path.js';

/** Where the lease objects are kept: the URL of a store, taken apart. What else it has depends on its kind. */
export interface StoreUrl {
  /** The first scheme of the URLs of its kind. */
  readonly kind: string;
  /** In its normal form: no slash at the end. */
  readonly url: string;
}

/** Where a URL comes from. */
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
  /** Its URL, for messages: up to the last part, the location that the leases share with other objects. */
  readonly form: string;
  /** What `endpoint` is for this kind, for the help. @default the kind has none */
  readonly endpoint?: string;
  /** What `region` is about, for the help. @default the kind has none */
  readonly region?: string;
  readonly own?: OwnSettings;
  /**
   * Of a cloud: where its prices are listed. Its requests are signed with the time of this host.
   * @default requests cost nothing
   */
  readonly cloudPrices?: string;
  /** Names of warnings by its SDK that errors report anyway. */
  readonly muted?: readonly string[];

  /**
   * Takes a URL apart.
   * @param text what follows the scheme, and its slashes where the form has them
   * @throws {ConfigError} with what is wrong with it
   */
  parse(text: string, given: GivenUrl): Partial<Options> & Pick<StoreUrl, 'url'>;

  /**
   * Loads the driver and opens the store. Resolves before the store has been reached.
   * @throws {ConfigError} when an option cannot be used, or a package is not installed
   */
  open(options: Options): Promise<LeaseStore>;
}
