import { posix } from 'node:path'
import type { Finding } from './import-rules.ts'
import type { Source } from './source.ts'

const exported = /^export (?:async )?(?:const|let|function\*?|class|type) ([A-Za-z_$][\w$]*)/gm

/** Two files of a folder of src export nothing under one name: a search for the name would find either. */
export function namesakeFindings(files: readonly Source[]): Finding[] {
  const first = new Map<string, string>()
  return files
    .filter(({ path }) => path.startsWith('src/') && !/\.(test|d)\.ts$/.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(exported)].flatMap((hit) => {
        const place = `${posix.dirname(path)} ${hit[1]}`
        const other = first.get(place) ?? path
        first.set(place, other)
        const line = text.slice(0, hit.index).split('\n').length
        return other === path
          ? []
          : [{ rule: 'namesakes', path, line, says: `${posix.basename(other)} exports ${hit[1]}, too` }]
      }),
    )
}
