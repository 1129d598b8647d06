/** The flags that load modules before the program: an SDK can only have been registered by one of them. */
const PRELOADING = /(?:^|\s)(?:--import|--require|--experimental-loader|--loader|-r)(?:[\s=]|$)/;

/**
 * Whether a module, and with it an OpenTelemetry SDK, may have been loaded before the command. Without one a
 * tracer would do nothing.
 *
 * @param execArgv as in `process`
 * @param nodeOptions the value of `NODE_OPTIONS`
 */
export function mayHaveSdk(execArgv: readonly string[], nodeOptions = ''): boolean {
  return PRELOADING.test(execArgv.join(' ')) || PRELOADING.test(nodeOptions);
}
