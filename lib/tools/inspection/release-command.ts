/** What a terminal would act on, or not show. */
export const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A word for a shell, which makes nothing of what is in it. */
export function shellWord(word: string): string {
  if (/^[\w:./@%+=-]+$/.test(word)) return word;
  if (word.search(UNPRINTABLE) < 0) return `'${word.replaceAll("'", "'\\''")}'`;
  // Of bash, zsh and POSIX 2024.
  const escaped = word.replace(/['\\]/g, '\\$&').replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) as number;
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
  });
  return `$'${escaped}'`;
}

/** What removes a key that may be data of an application. Without `registryKey`, `key` is its whole name. */
export function releaseCommand(key: string, registryKey?: string): string {
  const under = registryKey?.startsWith('-') ? '=' : ' ';
  const registry = registryKey === undefined ? '' : ` --registry-key${under}${shellWord(registryKey)}`;
  const word = shellWord(key);
  // Elsewhere it would be taken for an option.
  if (key.startsWith('-')) return `redis-locks release${registry} --may-be-data -- ${word}`;
  return `redis-locks release ${word}${registry} --may-be-data`;
}
