import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its key, as files in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** Both in one file, as Java wants them. */
  readonly both: string;
}

/** What a certificate is for. */
export interface CertificateOptions {
  /** Its common name. */
  readonly name: string;
  /** Such as `DNS:localhost,IP:127.0.0.1`. */
  readonly hosts?: string;
  /** How long it is valid; less than 0 for one that has expired. @default 30 */
  readonly days?: number;
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** A CA of a test's own, and what it has signed, made by `openssl` in a folder of its own. */
export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'nodelease-certificates-'));
  /** The file of its own certificate. */
  readonly ca = join(this.folder, 'ca.pem');

  constructor(name = 'Test CA') {
    openssl(
      'req',
      '-x509',
      ...EC,
      '-keyout',
      this.#key,
      '-out',
      this.ca,
      '-days',
      '30',
      '-subj',
      `/CN=${name}`,
    );
  }

  issue({ name, hosts = `DNS:${name}`, days = 30 }: CertificateOptions): Certificate {
    const file = (suffix: string) => join(this.folder, `${name}${suffix}`);
    const [cert, key, both, request, extensions] = [
      file('.pem'),
      file('.key'),
      file('-both.pem'),
      file('.csr'),
      file('.ext'),
    ];
    writeFileSync(extensions, `subjectAltName=${hosts}\n`);
    openssl('req', ...EC, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
    const signer = ['-CA', this.ca, '-CAkey', this.#key, '-CAcreateserial'];
    openssl(
      'x509',
      '-req',
      '-in',
      request,
      ...signer,
      '-out',
      cert,
      '-days',
      String(days),
      '-extfile',
      extensions,
    );
    writeFileSync(both, readFileSync(key, 'utf8') + readFileSync(cert, 'utf8'));
    return { cert, key, both };
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #key(): string {
    return join(this.folder, 'ca.key');
  }
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
