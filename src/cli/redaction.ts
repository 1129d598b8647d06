/** The fields whose values are secret, wherever they stand. */
const SECRET_FIELDS = ['authorization', 'token', 'secret', 'password', 'credentials', 'zookeeper-auth', 'zookeeperAuth', 'auth'];

/** The paths of secret fields in what is logged: at its top, and two levels below. */
export const SECRET_PATHS: readonly string[] = SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);
