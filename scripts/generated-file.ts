/** What every generator does with its text: write it, or with --check compare it with the file. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { root } from './environment.ts'

/** `source` says what the file is made from. */
export function writeGenerated({ file, text, source }: { file: string; text: string; source: string }): void {
  const path = `${root}/${file}`
  if (existsSync(path) && readFileSync(path, 'utf8') === text) console.log(`${file} is current.`)
  else if (process.argv.includes('--check')) {
    console.error(`${file} differs from ${source}; run: node ${relative(root, process.argv[1]!)}`)
    process.exitCode = 1
  } else {
    writeFileSync(path, text)
    console.log(`Wrote ${file}.`)
  }
}
