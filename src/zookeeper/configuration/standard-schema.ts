import { NodeLeaseError } from '../../core/base/errors.js';

/**
 * What zod, valibot, arktype and others implement (standardschema.dev, version 1), as far as it is used here.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Called with an object of texts. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a schema says of values. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** Why a schema refuses values. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The configuration is not what a schema expects. The message has the keys and the schema's own words, which
 * may quote a value.
 */
export class InvalidConfigurationError extends NodeLeaseError {
  readonly code = 'CONFIG_SCHEMA';

  constructor(readonly issues: readonly { readonly key: string; readonly message: string }[]) {
    const texts = issues.map(({ key, message }) => (key === '' ? message : `${key}: ${message}`));
    super(`the configuration is not as expected: ${texts.join('; ')}`);
  }
}

/**
 * What a schema makes of the values.
 * @param prefix what was taken off their keys
 * @throws {InvalidConfigurationError} where it refuses them, or has no answer at once
 */
export function validated<Output>(
  schema: StandardSchema<Output>,
  values: Readonly<Record<string, string>>,
  prefix: string,
): Output {
  const result = schema['~standard'].validate(values);
  if (result instanceof Promise)
    throw new InvalidConfigurationError([{ key: '', message: 'the schema has to validate without waiting' }]);
  if (!result.issues) return result.value;
  const keyOf = ({ path = [] }: SchemaIssue) =>
    prefix + path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  throw new InvalidConfigurationError(
    result.issues.map((issue) => ({ key: keyOf(issue), message: issue.message })),
  );
}
