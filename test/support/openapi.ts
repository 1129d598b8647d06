/** A schema in the JSON Schema dialect of OpenAPI 3.1, as far as it is used here. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: JsonType | readonly JsonType[];
  readonly const?: string | boolean;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
}

/** The types of JSON values. */
export type JsonType = 'object' | 'array' | 'string' | 'integer' | 'boolean' | 'null';

/** Where a JSON body is described. */
export interface JsonContent {
  readonly 'application/json': { readonly schema: JsonSchema; readonly example?: unknown };
}

/** A part of the path. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: 'path';
  readonly required: true;
  readonly description: string;
  readonly schema: JsonSchema;
}

/** What an operation answers with one status. */
export interface OpenApiResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  /** Absent for an answer without a body. */
  readonly content?: JsonContent;
}

/** What a method does at a path. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: { readonly required: true; readonly content: JsonContent };
  /** By the status. */
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

/** A document of OpenAPI 3.1, as far as it is used here. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: Readonly<Record<'title' | 'version' | 'description', string>> & {
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly paths: Readonly<
    Record<string, Readonly<Partial<Record<'get' | 'put' | 'delete', OpenApiOperation>>>>
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<
      Record<string, { readonly type: 'http'; readonly scheme: 'bearer'; readonly description: string }>
    >;
  };
}
