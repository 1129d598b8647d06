// Leases in PostgreSQL: `nodelease/store/postgres`.

export { openPostgresStore, type PostgresStoreOptions } from './open-postgres-store.js';
