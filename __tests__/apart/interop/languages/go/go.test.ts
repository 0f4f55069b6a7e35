import { testLanguage } from '../contract';
import { go } from './language';

testLanguage(go);
