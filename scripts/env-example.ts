/** Writes .env.example from the variables of config.ts; with --check it only reports whether it is current. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { envExample } from '../src/config.ts'
import { root } from './environment.ts'

const path = `${root}/.env.example`
const text = envExample()

if (existsSync(path) && readFileSync(path, 'utf8') === text) console.log('.env.example is current.')
else if (process.argv.includes('--check')) {
  console.error('.env.example differs from config.ts. Run node scripts/env-example.ts.')
  process.exitCode = 1
} else {
  writeFileSync(path, text)
  console.log('Wrote .env.example.')
}
