// Verifies a bundle with a public key, with the verifier of sigstore for JavaScript:
// node verify.mjs MODULES BUNDLE KEY
import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, bundle, key] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { bundleFromJSON } = require("@sigstore/bundle");
const { Verifier, toSignedEntity, toTrustMaterial } = require("@sigstore/verify");

const publicKey = createPublicKey(readFileSync(key));
const root = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] };
const material = toTrustMaterial(root, () => ({ publicKey, validFor: () => true }));
const thresholds = { ctlogThreshold: 0, tlogThreshold: 0, tsaThreshold: 0 };
const signed = toSignedEntity(bundleFromJSON(JSON.parse(readFileSync(bundle, "utf8"))));
new Verifier(material, thresholds).verify(signed);
console.log("verified");
