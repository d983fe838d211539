// Writes the keyless signatures of this folder: npm install @sigstore/mock @sigstore/sign
// @sigstore/bundle && node generate.js. The authority, the logs and the clock are mocks in this
// process; the bundles and the root are like those of the public instance.
const fs = require('fs'), crypto = require('crypto'), http = require('http');
const m = require('@sigstore/mock');
const { DSSEBundleBuilder, FulcioSigner, RekorWitness } = require('@sigstore/sign');
const { bundleToJSON } = require('@sigstore/bundle');
const out = __dirname;
const digest = crypto.createHash('sha256').update(fs.readFileSync(`${out}/manifest.json`)).digest('hex');
const pair = () => crypto.generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const serve = (h) => new Promise((done) => {
  const server = http.createServer((req, res) => {
    const parts = [];
    req.on('data', (d) => parts.push(d));
    req.on('end', async () => {
      const body = Buffer.concat(parts);
      const r = await h.fn(req.headers['content-type']?.includes('json') ? body.toString() : body);
      res.writeHead(r.statusCode, { 'Content-Type': r.contentType || 'text/plain' });
      res.end(r.response);
    });
  });
  server.listen(0, '127.0.0.1', () => { server.unref(); done(`http://127.0.0.1:${server.address().port}`); });
});
(async () => {
  const start = new Date(Date.now() - 3600e3);
  const ctlog = await m.initializeCTLog(pair());
  const ca = await m.initializeCA(pair(), ctlog);
  const tlog = await m.initializeTLog('https://rekor.sigstore.dev', pair());
  const F = await serve(m.fulcioHandler(ca));
  // The mock logs what it is sent. The public log keeps hashes of it.
  const sha256 = (data) => ({ algorithm: 'sha256', value: crypto.createHash('sha256').update(data).digest('hex') });
  const R = await serve({
    fn: async (body) => {
      const { apiVersion, kind, spec } = JSON.parse(body);
      const { envelope, verifiers } = spec.proposedContent;
      const { payload, signatures } = JSON.parse(envelope);
      const entry = await tlog.log({
        apiVersion,
        kind,
        spec: {
          envelopeHash: sha256(envelope),
          payloadHash: sha256(Buffer.from(payload, 'base64')),
          signatures: signatures.map(({ sig }, i) => ({ signature: sig, verifier: verifiers[i] })),
        },
      });
      return { statusCode: 201, response: JSON.stringify(entry), contentType: 'application/json' };
    },
  });
  const b64 = (o) => Buffer.from(JSON.stringify(o)).toString('base64url');
  const sign = async (identity, predicateType, subject) => {
    const jwt = `${b64({ alg: 'none' })}.${b64({ sub: identity, iss: 'https://token.actions.githubusercontent.com', aud: 'sigstore' })}.x`;
    const builder = new DSSEBundleBuilder({
      signer: new FulcioSigner({ fulcioBaseURL: F, identityProvider: { getToken: async () => jwt } }),
      witnesses: [new RekorWitness({ rekorBaseURL: R, entryType: 'dsse' })],
      certificateChain: false,
    });
    const statement = { _type: 'https://in-toto.io/Statement/v1', subject: [{ digest: { sha256: subject } }], predicateType, predicate: {} };
    const bundle = await builder.create({ data: Buffer.from(JSON.stringify(statement)), type: 'application/vnd.in-toto+json' });
    return bundleToJSON(bundle);
  };
  const wf = 'https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/v1';
  const SIGN = 'https://sigstore.dev/cosign/sign/v1';
  const w = (name, v) => fs.writeFileSync(`${out}/${name}`, JSON.stringify(v, null, 1) + '\n');
  w('signed.json', await sign(wf, SIGN, digest));
  w('provenance.json', await sign(wf, 'https://slsa.dev/provenance/v1', digest));
  w('other-subject.json', await sign(wf, SIGN, 'ab'.repeat(32)));
  const root = {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [{ baseUrl: 'https://rekor.sigstore.dev', hashAlgorithm: 'SHA2_256', publicKey: { rawBytes: tlog.publicKey.toString('base64'), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor: { start } }, logId: { keyId: crypto.createHash('sha256').update(tlog.publicKey).digest('base64') } }],
    certificateAuthorities: [{ subject: { organization: 'sigstore.mock', commonName: 'sigstore' }, uri: 'https://fulcio.sigstore.dev', certChain: { certificates: [{ rawBytes: Buffer.from(ca.rootCertificate).toString('base64') }] }, validFor: { start } }],
    ctlogs: [{ baseUrl: 'https://ctfe.sigstore.dev', hashAlgorithm: 'SHA2_256', publicKey: { rawBytes: Buffer.from(ctlog.publicKey).toString('base64'), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor: { start } }, logId: { keyId: Buffer.from(ctlog.logID).toString('base64') } }],
    timestampAuthorities: [],
  };
  w('root.json', root);
})().catch((e) => { console.error(e); process.exit(1); });
