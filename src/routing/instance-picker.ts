import type { ServiceInstance } from '../discovery/services/service-instance.js';

/** What routing needs of a provider. `ServiceProvider` is one. */
export interface InstancePicker<P = unknown> {
  /** The service, for people, and the host name in the URLs that are meant for it where nothing else is said. */
  readonly name: string;

  /** All that are known, those included that are never picked. Looked at where many that were picked can be sent nothing. @default not known */
  readonly instances?: readonly ServiceInstance<P>[];

  /** One instance to send work to, none of `except`; undefined where there is none. At once, without input or output. */
  pick(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> | undefined;

  /**
   * The same for whoever cannot go on without.
   *
   * @throws NoInstanceError when there is none, with what is known of them
   */
  need?(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P>;

  /** The instance has failed somebody. */
  noteError(instance: ServiceInstance<P>): void;
}
