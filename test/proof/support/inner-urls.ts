/** Forms of addresses that strangers name and that must never be fetched: inside the network, or other than https. */

const loopback = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '127.255.255.254',
  'localhost',
  'localhost.',
  'a.localhost',
  'LOCALHOST',
  '0',
  '0.0.0.0',
  '0x0',
]
const networks = [
  '10.0.0.1',
  '10.1',
  '0xa.1',
  '172.16.0.1',
  '172.31.255.254',
  '192.168.0.1',
  '192.168.1',
  '0xc0a80001',
  '3232235521',
  '100.64.0.1',
  '198.18.0.1',
  '192.0.2.1',
  '203.0.113.1',
  '224.0.0.1',
  '255.255.255.255',
]
const metadata = [
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '169.254.43518',
  '[::ffff:a9fe:a9fe]',
  '[fd00:ec2::254]',
  'metadata',
  'metadata.google.internal',
]
const sixes = [
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[fc00::1]',
  '[fe80::1]',
  '[ff02::1]',
]
const names = [
  'printer.local',
  'router.lan',
  'wiki.corp.internal',
  '127。0。0。1',
  '①②⑦.⓪.⓪.①',
  '127%2e0.0.1',
]

export const innerUrls: readonly string[] = [
  ...[...loopback, ...networks, ...metadata, ...sixes, ...names].map((host) => `https://${host}/path`),
  'http://example.com/path',
  'https://user:secret@example.com/',
  'https://user@example.com/',
  'https://example.com:8443/',
  'https://example.com:22/',
  'https://example.com:80/',
  'gopher://example.com/',
  'file:///etc/passwd',
  'ftp://example.com/',
  'data:application/json,{}',
  'javascript:alert(1)',
  '//example.com/path',
  'no url at all',
]

/** Answers of a resolver that must not lead to a connection, also where a public address is among them. */
export const innerAnswers: readonly (readonly string[])[] = [
  ['127.0.0.1'],
  ['93.184.216.34', '127.0.0.1'],
  ['::1'],
  ['169.254.169.254'],
  ['::ffff:10.0.0.1'],
  [],
]
